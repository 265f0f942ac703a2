"""What commands show: environments, chats, rewards and results."""
